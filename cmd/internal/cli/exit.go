package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ExitCode is a process exit code. 128+n means that signal n ended the run.
type ExitCode int

// Exit codes of every command.
const (
	ExitDone           ExitCode = 0 // healthy, or the fix is not a flag of this server
	ExitError          ExitCode = 1 // any other error
	ExitUsage          ExitCode = 2 // invalid usage
	ExitRecommendation ExitCode = 3 // a flag of this server should be changed
	ExitNothing        ExitCode = 4 // reached, but without load or evaluable data
	ExitUnreachable    ExitCode = 5 // unreachable, not an engine that rooftop reads, or it no longer answers
	ExitUnhealthy      ExitCode = 6 // reached, but its engine is dead, hung or failing

	ExitBrokenPipe = ExitCode(128 + syscall.SIGPIPE) // the reader of stdout is gone
)

// CodedError is an error with an exit code. Err may be nil, if there is nothing to print.
type CodedError struct {
	Code ExitCode
	Err  error
}

func (e *CodedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", int(e.Code))
	}
	return e.Err.Error()
}

func (e *CodedError) Unwrap() error { return e.Err }

// Exit returns an error that ends a command with a code, without a message.
func Exit(code ExitCode) error {
	if code == ExitDone {
		return nil
	}
	return &CodedError{Code: code}
}

// Fail returns an error that ends a command with a code, and prints err unless it is nil. Errors
// without a code end a command with [ExitError].
func Fail(code ExitCode, err error) error { return &CodedError{Code: code, Err: err} }

// Usagef returns an error that ends a command because of invalid usage.
func Usagef(format string, args ...any) error {
	return Fail(ExitUsage, fmt.Errorf(format, args...))
}

// SignalError is the cause of a context that was ended by a signal.
type SignalError struct{ Signal syscall.Signal }

func (e *SignalError) Error() string { return e.Signal.String() + " received" }

// Interrupted returns the error of work that was cut short by the end of ctx.
func Interrupted(ctx context.Context) error {
	if code := SignalCode(ctx); code != 0 {
		return Exit(code)
	}
	return Fail(ExitError, context.Cause(ctx))
}

// SignalCode returns 128+n if signal n ended ctx, otherwise 0.
func SignalCode(ctx context.Context) ExitCode {
	var s *SignalError
	if errors.As(context.Cause(ctx), &s) {
		return ExitCode(128 + int(s.Signal))
	}
	return 0
}

// Coded adds [ExitError] to an error without an exit code.
func Coded(err error) error {
	var coded *CodedError
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return Fail(ExitError, err)
}

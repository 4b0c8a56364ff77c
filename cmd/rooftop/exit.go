package main

import (
	"fmt"
	"syscall"

	"github.com/rooftop-dev/rooftop/engine"
)

// exitCode is a process exit code (interfaces.md section 2).
type exitCode int

// Exit codes. 128+n is added for a run ended by signal n.
const (
	exitDone           exitCode = 0 // healthy, or what helps is not a flag of this server
	exitError          exitCode = 1 // any other error
	exitUsage          exitCode = 2 // the command line is off
	exitRecommendation exitCode = 3 // a flag of this server should be changed
	exitNothing        exitCode = 4 // reached, but no load or nothing evaluable
	exitUnreachable    exitCode = 5 // unreachable, or not a vLLM metrics page

	exitNobodyReads = exitCode(128 + syscall.SIGPIPE) // what stdout went to is closed
)

// codedError carries an exit code, with an error to print or without.
type codedError struct {
	code exitCode
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", int(e.code))
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

// exit ends a command with a code and nothing to print.
func exit(code exitCode) error {
	if code == exitDone {
		return nil
	}
	return &codedError{code: code}
}

// fail ends a command with a code and one sentence, or with none where err is nil.
func fail(code exitCode, err error) error { return &codedError{code: code, err: err} }

// usage ends a command because of how it was called.
func usage(format string, args ...any) error {
	return fail(exitUsage, fmt.Errorf(format, args...))
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return e.signal.String() + " received" }

// outcomeCode is the exit code of a finished diagnosis.
func outcomeCode(d *engine.Diagnosis) exitCode {
	switch d.Outcome {
	case engine.OutcomeNoLoad, engine.OutcomeNotEvaluable:
		return exitNothing
	case engine.OutcomeRecommendation:
		if d.Recommendation.Kind == engine.KindFlag {
			return exitRecommendation
		}
	}
	return exitDone
}

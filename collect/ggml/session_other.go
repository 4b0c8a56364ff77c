//go:build !linux || !(amd64 || arm64)

package ggml

import (
	"context"
	"errors"
	"runtime"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// Built reports whether this build can attach to processes with eBPF.
const Built = false

// errSystem is the error of all methods: eBPF exists only on Linux.
var errSystem = errors.New("processes are watched with eBPF on Linux, on amd64 and arm64; this is " + runtime.GOOS + " on " + runtime.GOARCH)

// Session is not available on this system.
type Session struct{}

// Open fails on this system.
func Open(*layouts.Runtime, Options) (*Session, error) { return nil, errSystem }

// OwnPID returns 0 on this system.
func OwnPID() int { return 0 }

// SetDetail fails on this system.
func (*Session) SetDetail(optrace.Detail) error { return errSystem }

// Next fails on this system.
func (*Session) Next(context.Context) ([]optrace.Event, error) { return nil, errSystem }

// Tables returns empty tables on this system.
func (*Session) Tables() *optrace.Tables { return &optrace.Tables{} }

// Target returns an empty target on this system.
func (*Session) Target() optrace.Target { return optrace.Target{} }

// Dropped returns 0 on this system.
func (*Session) Dropped() int64 { return 0 }

// Gaps returns nil on this system.
func (*Session) Gaps() []optrace.Gap { return nil }

// Close does nothing on this system.
func (*Session) Close() error { return nil }

// Ladder returns one rung on this system, which cannot be satisfied.
func Ladder() []Rung {
	return []Rung{{Name: "kernel", Needed: true, Found: runtime.GOOS + " " + runtime.GOARCH, Missing: "everything: " + errSystem.Error()}}
}

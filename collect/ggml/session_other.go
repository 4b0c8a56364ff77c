//go:build !linux || !(amd64 || arm64)

package ggml

import (
	"context"
	"errors"
	"runtime"

	layouts "github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// errSystem says that eBPF is of Linux.
var errSystem = errors.New("processes are watched with eBPF on Linux, on amd64 and arm64; this is " + runtime.GOOS + " on " + runtime.GOARCH)

// Session is attached to a target; not on this system.
type Session struct{}

// Open fails on this system.
func Open(*layouts.Runtime, Options) (*Session, error) { return nil, errSystem }

// Wait fails on this system.
func Wait(context.Context, int) (*layouts.Runtime, error) { return nil, errSystem }

// OwnPID is not known on this system.
func OwnPID() int { return 0 }

// SetDetail fails on this system.
func (*Session) SetDetail(optrace.Detail) error { return errSystem }

// Detail is none on this system.
func (*Session) Detail() optrace.Detail { return 0 }

// Next fails on this system.
func (*Session) Next(context.Context) ([]optrace.Event, error) { return nil, errSystem }

// Tables are empty on this system.
func (*Session) Tables() *optrace.Tables { return &optrace.Tables{} }

// Target is none on this system.
func (*Session) Target() optrace.Target { return optrace.Target{} }

// Dropped is 0 on this system.
func (*Session) Dropped() int64 { return 0 }

// Gaps are none on this system.
func (*Session) Gaps() []optrace.Gap { return nil }

// Close does nothing on this system.
func (*Session) Close() error { return nil }

// Ladder has one rung on this system, which nothing gets over.
func Ladder() []Rung {
	return []Rung{{Name: "kernel", Needed: true, Found: runtime.GOOS + " " + runtime.GOARCH, Missing: "everything: " + errSystem.Error()}}
}

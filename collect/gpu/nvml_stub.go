//go:build !linux || !cgo

package gpu

import (
	"context"
	"errors"
	"time"
)

// openLocalNVML says why this build has no NVML: go-nvml needs cgo, and the
// library it loads is Linux's.
func openLocalNVML(context.Context, func() time.Duration) (Source, error) {
	return nil, errors.New("this build of rooftop has no NVML (it was built without cgo, or not for Linux)")
}

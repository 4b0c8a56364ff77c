//go:build !linux

package corpus

import (
	"bytes"
	"errors"
	"io"
)

// onTerminal calls do and returns the output. Pseudo-terminals are supported only on Linux.
func onTerminal(width int, do func(io.Writer)) (string, error) {
	if width > 0 {
		return "", errors.ErrUnsupported
	}
	var printed bytes.Buffer
	do(&printed)
	return printed.String(), nil
}

//go:build !linux

package main

import (
	"errors"
	"os"
)

func OpenTerminal(width, height int) (control, screen *os.File, err error) {
	return nil, nil, errors.ErrUnsupported
}

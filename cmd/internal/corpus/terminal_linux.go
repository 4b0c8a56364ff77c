package corpus

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// onTerminal calls do with a terminal of the given width, and returns the output. A width of 0 is
// no terminal.
func onTerminal(width int, do func(io.Writer)) (string, error) {
	var printed bytes.Buffer
	if width == 0 {
		do(&printed)
		return printed.String(), nil
	}
	control, screen, err := openTerminal(width)
	if err != nil {
		return "", err
	}
	defer control.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&printed, control) // ends with EIO when the other side is closed
	}()
	do(screen)
	_ = screen.Close()
	<-done
	return printed.String(), nil
}

// openTerminal opens a pseudo-terminal that does not translate its output.
func openTerminal(width int) (control, screen *os.File, err error) {
	if control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = control.Close()
		}
	}()
	fd := int(control.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, err
	}
	if _, err = term.MakeRaw(int(screen.Fd())); err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: uint16(width)})
	}
	return control, screen, err
}

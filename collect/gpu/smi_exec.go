package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// findSMI returns the path of nvidia-smi: the given one, else the one in PATH, else that
// of WSL or GKE, which is outside PATH.
func findSMI(given string) (string, error) {
	candidates := []string{"nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"}
	if given != "" {
		candidates = []string{given}
	}
	for _, c := range candidates {
		if program, err := exec.LookPath(c); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s was not found", candidates[0])
}

// runner returns a starter for a program. The program gets a minimal environment, because
// rooftop's own may hold secrets, and its own process group, so that Ctrl-C reaches only
// rooftop. It is killed when the context ends.
func runner(program string) starter {
	return func(ctx context.Context, args ...string) (*child, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.WaitDelay = time.Second
		complaints := &head{limit: 4 << 10}
		cmd.Stderr = complaints
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", program, err)
		}
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start %s: %w", program, err)
		}
		return &child{out: out, wait: func() error {
			err := cmd.Wait()
			if err != nil && complaints.Len() > 0 {
				return errors.New(printable(complaints.String()))
			}
			return err
		}}, nil
	}
}

// head is a buffer that keeps the first limit bytes written to it.
type head struct {
	bytes.Buffer
	limit int
}

// Write implements [io.Writer]. It discards bytes over the limit and reports them as
// written.
func (h *head) Write(p []byte) (int, error) {
	room := min(max(h.limit-h.Len(), 0), len(p))
	if _, err := h.Buffer.Write(p[:room]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// runToEnd returns a function that runs a program to its end and returns its output.
func runToEnd(start starter) func(context.Context, ...string) (string, error) {
	return func(ctx context.Context, args ...string) (string, error) {
		c, err := start(ctx, args...)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(io.LimitReader(c.out, smiMaxAnswer))
		return string(text), errors.Join(err, c.wait())
	}
}

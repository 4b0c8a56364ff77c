package gpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// findSMI returns the nvidia-smi to run: the given one, that of PATH, or the one
// that WSL and GKE keep outside it.
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

// runner starts a program with a small environment of its own: what rooftop was
// started with may hold secrets. It has its own process group, so that an
// interrupt at the keyboard reaches rooftop alone, and ends with its context.
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

// head keeps the beginning of what is written to it.
type head struct {
	bytes.Buffer
	limit int
}

// Write implements [io.Writer]; what is over the limit is dropped.
func (h *head) Write(p []byte) (int, error) {
	room := min(max(h.limit-h.Len(), 0), len(p))
	if _, err := h.Buffer.Write(p[:room]); err != nil {
		return 0, err
	}
	return len(p), nil
}

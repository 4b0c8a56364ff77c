package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestSMIProcess runs a program in nvidia-smi's place: it is ended by Close, and
// it does not see rooftop's environment.
func TestSMIProcess(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("NOT CHECKED: there is no /bin/sh to write an nvidia-smi with")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "nvidia-smi")
	row := firstLine(smiFile(t, "h100x2.csv"))
	script := fmt.Sprintf("#!/bin/sh\necho '%s'\ncase \"$*\" in *-lms*) env > %[2]s/env; echo $$ > %[2]s/pid; echo '%[1]s'; exec sleep 1000;; esac\n", row, dir)
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ROOFTOP_API_KEY", "a-secret")
	found, err := findSMI(program)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSMI(t.Context(), sinceStart(), runner(found), fstest.MapFS{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Read(t.Context())
	if err != nil || r.Devices[0].Fields[engine.GPUUtil] != stat.Some(0.97) {
		t.Fatalf("read: got %v, %v", r, err)
	}
	text, err := waitForFile(t.Context(), filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("after Close the program (pid %d) is still there: %v", pid, err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(env), "a-secret") || !strings.Contains(string(env), "LC_ALL=C") {
		t.Errorf("the program's environment is %q", env)
	}
}

// waitForFile reads a file that another process is about to write.
func waitForFile(ctx context.Context, name string) (string, error) {
	for ctx.Err() == nil {
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
			return string(text), nil
		}
	}
	return "", ctx.Err()
}

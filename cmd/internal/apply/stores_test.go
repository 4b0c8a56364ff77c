package apply

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// server names a server that no other test and no other process has: the lock is of the machine.
func server(t *testing.T) serverdir.Identity {
	return serverdir.Identity{Host: fmt.Sprintf("%s-%d.example", strings.ToLower(t.Name()), os.Getpid()), Port: 8000, Model: "org/Tiny-1B", GPUs: []string{"GPU-b", "GPU-a"}}
}

func open(t *testing.T, root string, id serverdir.Identity) *serverdir.Store {
	t.Helper()
	s, err := serverdir.OpenStore(root, id, "1.2.3")
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func write(t *testing.T, s *serverdir.Store, list ...journal.Record) {
	t.Helper()
	for _, r := range list {
		must(t, s.Write(r))
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onlyOwner checks that nobody else reads what lies in a directory.
func onlyOwner(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	must(t, err)
}

// mustApply ends a test whose change is not made.
func mustApply(t testing.TB, by Applier, a loop.Apply) {
	t.Helper()
	if got := by.Apply(t.Context(), a); got.Err != "" {
		t.Fatal(got.Err)
	}
}

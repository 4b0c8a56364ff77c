//go:build e2e && linux

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	main "github.com/rooftop-dev/rooftop/cmd/rooftop"
)

// TestE2EDocs runs each block of commands in README and docs/ unchanged, in separate namespaces in which a simulated
// server answers at the addresses that the block names.
func TestE2EDocs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT CHECKED: the commands of the documentation: namespaces need root")
	}
	path := built(t)
	for _, b := range main.CodeBlocks(t) {
		if !b.Shell || b.NotRun != "" {
			continue
		}
		t.Run(fmt.Sprintf("%s:%d", b.File, b.Line), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			work := filepath.Join(dir, "work")
			for _, d := range []string{work, filepath.Join(dir, "bin")} {
				must(t, os.Mkdir(d, 0o755))
			}
			must(t, os.Symlink(path, filepath.Join(dir, "bin", "rooftop")))
			trace := readFile(t, filepath.Join("..", "..", "testdata", "recordings", "operators.jsonl.gz"))
			for name, text := range map[string]string{
				filepath.Join(work, "run.jsonl.gz"): string(trace), filepath.Join(work, "p.txt"): "Name three rivers.", filepath.Join(dir, "block.sh"): b.Text,
			} {
				must(t, os.WriteFile(name, []byte(text), 0o600))
			}
			out, err := exec.CommandContext(testContext(t), "unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc", "bash", "testdata/docs/run.sh", dir).CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s\n%s", err, b.Text, out)
			}
		})
	}
}

package serverdir

import (
	"os"
	"path/filepath"
	"testing"
)

// A run that was killed as it began leaves files without a named server: those that are incomplete
// are removed. A launch without a named server may be what restores one, and stays.
func TestTidyWithoutANamedServer(t *testing.T) {
	for _, tt := range []struct {
		name, file string
		stays      bool
	}{
		{"an incomplete name of the server", ".server.json5645978556860412245", false},
		{"a launch", "launch-1.json", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "a")
			path := filepath.Join(dir, tt.file)
			must(t, os.Mkdir(dir, 0o700))
			for name, text := range map[string]string{path: "{", filepath.Join(dir, journalName): ""} {
				must(t, os.WriteFile(name, []byte(text), 0o600))
			}
			must(t, Tidy(root))
			if _, err := os.Stat(path); (err == nil) != tt.stays {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

package attach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPIKey checks that a file without a bare key is refused, and that the error has none of its content.
func TestAPIKey(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ name, variable, file, want, says string }{
		{"nothing", "", "", "", ""},
		{"the variable", " sk-0\n", "", "sk-0", ""},
		{"a variable of two words", "s3cret words", "", "", "ROOFTOP_API_KEY"},
		{"a file before the variable", "sk-0", write("good", "sk-1\n"), "sk-1", ""},
		{"an empty file", "sk-0", write("empty", "\n"), "", "empty"},
		{"a whole .env file", "", write("env", "A=s3cret B=2"), "", "bare key"},
		{"a large file", "", write("large", strings.Repeat("s3cret", 3<<10)), "", "large"},
		{"a missing file", "", filepath.Join(dir, "none"), "", "none"},
	} {
		got, err := APIKey(func(string) (string, bool) { return c.variable, c.variable != "" }, c.file)
		if got != c.want || (err != nil) != (c.says != "") {
			t.Errorf("%s: got %q and %v, want %q", c.name, got, err, c.want)
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.says)
		}
	}
}

package collect

import (
	"errors"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	tests := []struct{ name, in, base string }{
		{"base URL", "http://gpu1:8000", "http://gpu1:8000"},
		{"trailing slash", "http://gpu1:8000/", "http://gpu1:8000"},
		{"metrics URL", "http://gpu1:8000/metrics", "http://gpu1:8000"},
		{"metrics URL with slash", "http://gpu1:8000/metrics/", "http://gpu1:8000"},
		{"API base", "http://gpu1:8000/v1", "http://gpu1:8000"},
		{"API endpoint", "http://gpu1:8000/v1/chat/completions", "http://gpu1:8000"},
		{"below a path", "https://host/llama/metrics", "https://host:443/llama"},
		{"API below a path, query and fragment", "https://host/team/a/v1?x=1#y", "https://host:443/team/a"},
		{"host and port", "gpu1:9000", "http://gpu1:9000"},
		{"host and port and path", "gpu1:9000/metrics", "http://gpu1:9000"},
		{"host", "gpu1", "http://gpu1:8000"},
		{"port", "8001", "http://localhost:8001"},
		{"colon and port", ":8001", "http://localhost:8001"},
		{"scheme without port", "http://gpu1", "http://gpu1:80"},
		{"https without port", "https://gpu1", "https://gpu1:443"},
		{"upper case", "HTTP://GPU1:8000/metrics", "http://gpu1:8000"},
		{"spaces around", "  http://gpu1:8000\n", "http://gpu1:8000"},
		{"IPv4", "10.0.0.7:8000", "http://10.0.0.7:8000"},
		{"IPv6 in brackets", "http://[fe80::1]:8000", "http://[fe80::1]:8000"},
		{"IPv6 in brackets without scheme", "[::1]:9000", "http://[::1]:9000"},
		{"bare IPv6", "::1", "http://[::1]:8000"},
		{"query is not printed", "http://gpu1:8000/metrics?token=s3cret", "http://gpu1:8000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTarget(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Base() != tt.base || got.String() != tt.base || got.Metrics() != tt.base+"/metrics" {
				t.Errorf("base %q, string %q, metrics %q, want %q", got.Base(), got, got.Metrics(), tt.base)
			}
		})
	}
}

func TestParseTargetRefuses(t *testing.T) {
	tests := []struct{ name, in, says string }{
		{"empty", " ", "empty"},
		{"other scheme", "grpc://gpu1:8000", `"grpc"`},
		{"no host's scheme", "unix:///run/x", `"unix"`},
		{"password", "http://me:s3cret@gpu1:8000", "--api-key-file"},
		{"no host", "http://:8000", "no host"},
		{"port zero", "gpu1:0", "port"},
		{"port too large", "gpu1:65536", "port"},
		{"port in letters", "gpu1:http", "--url"},
		{"space within", "gpu1 :8000", "space"},
		{"control character", "gpu1\x1b[31m:8000", "control"},
		{"bad escape", "http://gpu1:8000/%zz", "does not parse"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseTarget(tt.in)
			if !errors.Is(err, ErrTarget) {
				t.Fatalf("got %v and error %v, want ErrTarget", got, err)
			}
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "s3cret") || strings.ContainsRune(err.Error(), 0x1b) {
				t.Errorf("error %q should say %q and repeat nothing secret", err, tt.says)
			}
		})
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"http://h:1/metrics?x", "8000", "::1", "[::1]:2", "https://h/a/v1/", "http://u:p@h", "h:\x00", "//h", "http://h:1/\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		target, err := ParseTarget(s)
		if err != nil {
			if !target.IsZero() {
				t.Errorf("an error with the target %v", target)
			}
			return
		}
		again, err := ParseTarget(target.Metrics())
		if err != nil || again.Base() != target.Base() {
			t.Errorf("%q became %q, which became %q (%v)", s, target.Base(), again.Base(), err)
		}
	})
}

package otlp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, endpoint, ca, want string }{
		{"http", "http://127.0.0.1:4318", "", ""},
		{"https with a path", "https://collector.example/otlp/", "", ""},
		{"IPv6", "http://[::1]:4318", "", ""},
		{"nothing", "", "", "its scheme is neither"},
		{"no scheme", "localhost:4318", "", "its scheme is neither"},
		{"gRPC", "grpc://localhost:4317", "", "its scheme is neither"},
		{"no host", "http://:4318", "", "it names no host"},
		{"a password", "http://me:hidden@h:4318", "", "it holds a user or a password"},
		{"a query", "http://h:4318/?key=hidden", "", "it holds a query"},
		{"a fragment", "http://h:4318/#hidden", "", "it holds a query or a fragment"},
		{"no URL", "http://h:4318/%zzhidden", "", "it is not a URL"},
		{"no certificates", "https://h", "/nonexistent/ca.pem", "read the collector's certificates: open /nonexistent/ca.pem"},
		{"what is none", "https://h", "options_test.go", "options_test.go holds no PEM certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Endpoint: c.endpoint, CAFile: c.ca}
			err := o.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "hidden") || c.ca == "" && !errors.Is(err, ErrEndpoint)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestParseHeaders(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "map[]"},
		{"two, a comment and a blank line", "# of the collector\n\nAuthorization: Bearer hidden: x\r\nx-scope-orgid:a\n", "map[Authorization:[Bearer hidden: x] X-Scope-Orgid:[a]]"},
		{"no colon", "\nhidden", "line 2 is not a header"},
		{"no name", ": hidden", "line 1: a header name"},
		{"a name with a space", "hid den: x", "line 1: a header name"},
		{"no value", "a:", "line 1: a header value"},
		{"a control character", "a: hid\x01den", "line 1: a header value"},
		{"ours", "content-type: hidden", "line 1: rooftop sets Content-Type itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := ParseHeaders(c.text)
			got := fmt.Sprint(h.fields)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) || err != nil && strings.Contains(got, "hidden") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestHeadersAreNotPrinted(t *testing.T) {
	h, err := ParseHeaders("Authorization: hidden")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Headers: h}
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(o), fmt.Sprintf("%+v %#v %s %q", o, o, h, h), string(data)} {
		if strings.Contains(text, "hidden") || !strings.Contains(text, redacted) {
			t.Errorf("printed: %s", text)
		}
	}
	if (Headers{}).String() != "" {
		t.Error("no headers are shown as some")
	}
}

func TestReadHeaders(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, text, want string }{
		{"good", "a: b", ""},
		{"bad", "hidden", "bad: line 1 is not a header"},
		{"large", "a: " + strings.Repeat("x", maxHeaderBytes), "is larger than 16384 bytes"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadHeaders(path); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := ReadHeaders(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func FuzzParseHeaders(f *testing.F) {
	f.Add("Authorization: Bearer x\n# c\n")
	f.Add("a:b\r\nC-D : e:f")
	f.Add("\x00: \xff")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHeaders(text)
		if err != nil {
			return
		}
		for name, values := range h.fields {
			if name == "" || strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
				t.Errorf("%q: %q", name, values)
			}
		}
	})
}

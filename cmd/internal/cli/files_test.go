package cli

import (
	"slices"
	"testing"
)

func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.Index(pairs, name)
		if i < 0 || i%2 == 1 {
			return "", false
		}
		return pairs[i+1], true
	}
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		name string
		env  func(string) (string, bool)
		want string
	}{
		{"given", variables("XDG_STATE_HOME", "/state", "HOME", "/home/me"), "/state"},
		{"relative", variables("XDG_STATE_HOME", "state", "HOME", "/home/me"), "/home/me/.local/state"},
		{"at home", variables("HOME", "/home/me"), "/home/me/.local/state"},
		{"nowhere", variables(), ""},
	} {
		got, err := StateDir(c.env)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

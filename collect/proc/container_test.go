package proc

import (
	"strings"
	"testing"
)

func TestContainerOfAServer(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	other := strings.Repeat("f", 64)
	for group, want := range map[string]string{
		"/docker/" + id:                         id,
		"/system.slice/docker-" + id + ".scope": id,
		"/docker/" + other + "/docker/" + id:    id, // Docker in Docker
		"/../docker-" + id + ".scope":           id, // seen from a control group of its own
		"/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + id + ".scope": id,
		"/machine.slice/libpod-" + id + ".scope":                                          "",
		"/kubepods/besteffort/podx/" + id:                                                 "",
		"/docker/" + id[:12]:                                                              "",
		"/":                                                                               "",
	} {
		if got := container([]string{"/", group}, nil); got != want {
			t.Errorf("%s: %q, want %q", group, got, want)
		}
	}
	if got := container([]string{"/docker/" + id}, []string{"/docker/" + id}); got != "" {
		t.Errorf("in rooftop's own container: %q", got)
	}
}

package proc

import (
	"strings"
	"testing"
)

func TestService(t *testing.T) {
	for _, c := range []struct {
		theirs, ours string
		name         string
		uid          int
	}{
		{"/system.slice/vllm.service", "/", "vllm.service", -1},
		{"/ /system.slice/system-vllm.slice/vllm@1.service", "/", "vllm@1.service", -1},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/vllm@8000.service", "", "vllm@8000.service", 1000},
		{"/user.slice/user-1000.slice/session-2.scope", "", "", -1},
		{"/user.slice/user-1000.slice/user@1000.service", "", "", -1},
		{"/system.slice/ssh.service", "", "", -1},
		{"/system.slice/sshd@3-10.0.0.1:22.service", "", "", -1},
		{"/system.slice/docker.service", "/system.slice/docker.service", "", -1},
		{"", "", "", -1},
	} {
		if name, uid := service(strings.Fields(c.theirs), strings.Fields(c.ours)); name != c.name || uid != c.uid {
			t.Errorf("%q: %q of %d, want %q of %d", c.theirs, name, uid, c.name, c.uid)
		}
	}
}

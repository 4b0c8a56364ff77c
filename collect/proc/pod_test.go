package proc

import "testing"

func TestPodOfControlGroups(t *testing.T) {
	const uid = "3f1c9a52-7d0e-4b9c-9b7e-0d8a6a1f2c34"
	for group, want := range map[string]string{
		"/kubepods/besteffort/pod" + uid + "/0123456789abcdef":                                                                                uid,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod3f1c9a52_7d0e_4b9c_9b7e_0d8a6a1f2c34.slice/cri-containerd-0123.scope": uid,
		"/docker/0123456789abcdef":        "",
		"/system.slice/podman.service":    "",
		"/kubepods/besteffort":            "",
		"/user.slice/pod" + uid + "/0123": "",
	} {
		if got := podUID([]string{"/", group}); got != want {
			t.Errorf("%s: %q, want %q", group, got, want)
		}
	}
}

//go:build amd64 || arm64

package ggml

import "testing"

func TestMeansSeeAllThreads(t *testing.T) {
	for name, c := range map[string]struct {
		pid                             int
		single, multi, byProcess, admin bool
		want                            means
	}{
		"now":                                {pid: 7, multi: true, byProcess: true, admin: true, want: means{true, 7}},
		"two capabilities":                   {pid: 7, multi: true, byProcess: true, want: means{true, 7}},
		"before 6.6":                         {pid: 7, admin: true, want: means{false, 7}},
		"one by one, asked for":              {pid: 7, single: true, multi: true, byProcess: true, want: means{false, 7}},
		"by thread, root":                    {pid: 7, multi: true, admin: true, want: means{false, 7}},
		"by thread, two capabilities":        {pid: 7, multi: true, want: means{true, 0}},
		"all processes, where it filters so": {multi: true, admin: true, want: means{true, 0}},
	} {
		if got := chooseMeans(c.pid, c.single, c.multi, c.byProcess, c.admin); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

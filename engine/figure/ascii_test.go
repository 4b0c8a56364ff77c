package figure

import "testing"

func TestASCII(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain stays", "tok/s 12.4", "tok/s 12.4"},
		{"a change of a flag", "--max-num-seqs 4 → 32", "--max-num-seqs 4 -> 32"},
		{"figures", "−3.2\u00a0µs … ±4 ≥ 5", "-3.2\u00a0us ... +-4 >= 5"},
		{"no spelling", "模型 x", "?? x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ASCII(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

package loadgen

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLengths(t *testing.T) {
	read := func(name string) ([]byte, error) {
		if name != "f" {
			return nil, errors.New("no such file")
		}
		return []byte("# lengths\n10, 20\r\n30 # last\n"), nil
	}
	for _, tc := range []struct {
		in   string
		want Lengths
		err  string
	}{
		{in: "512", want: Fixed(512)},
		{in: "100-800", want: Between(100, 800)},
		{in: "lognormal:512,0.6", want: LognormalMean(512, 0.6, 0)},
		{in: "lognormal:512,0.6,2000", want: LognormalMean(512, 0.6, 2000)},
		{in: "lognormal:median=512,sigma=0.6,max=2000", want: LognormalMedian(512, 0.6, 2000)},
		{in: "@f", want: OneOf([]int{10, 20, 30})},
		{in: "@g", err: "no such file"},
		{in: "", err: "is not a length"},
		{in: "0", err: "lengths start at 0, must be at least 1"},
		{in: "9-3", err: "lengths end at 3, below their start 9"},
		{in: "-3", err: "is not a length"},
		{in: "1-2-3", err: "is not a length"},
		{in: "999999999", err: "lengths end at 999999999, must be at most"},
		{in: "lognormal:512", err: "give lognormal:MEAN,SIGMA[,MAX]"},
		{in: "lognormal:512,nan", err: "give lognormal:MEAN"},
		{in: "lognormal:1,2,3,4", err: "give lognormal:MEAN"},
		{in: "lognormal:mean=1,median=2,sigma=1", err: "give lognormal:MEAN"},
		{in: "lognormal:512,-1", err: "sigma of -1"},
		{in: "lognormal:0,1", err: "mean of 0"},
	} {
		got, err := ParseLengths(tc.in, read)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got %v, want %s", tc.in, err, tc.err)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v\n%s", tc.in, err, diff)
		}
	}
	read = func(string) ([]byte, error) { return []byte("1\n2 x\n"), nil }
	if _, err := ParseLengths("@l.txt", read); err == nil || err.Error() != `l.txt:2: "x" is not a length: give whole numbers from 1 to 16777216` {
		t.Errorf("got %v", err)
	}
}

func TestParseDelay(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want Delay
		bad  bool
	}{
		{in: "0", want: Delay{}},
		{in: "2s", want: Always(2 * sec)},
		{in: "1s-5s", want: Delay{Min: sec, Max: 5 * sec}},
		{in: "exp:2s", want: Delay{Shape: Exponential, Mean: 2 * sec}},
		{in: "lognormal:2s,0.5", want: Delay{Shape: Lognormal, Mean: 2 * sec, Sigma: 0.5}},
		{in: "5", bad: true}, {in: "-1s", bad: true}, {in: "5s-1s", bad: true}, {in: "exp:", bad: true}, {in: "lognormal:2s", bad: true}, {in: "exp:-1s", bad: true},
	} {
		got, err := ParseDelay(tc.in)
		if (err != nil) != tc.bad || !tc.bad && got != tc.want {
			t.Errorf("%q: got %+v, %v", tc.in, got, err)
		}
	}
}

// Drawn lengths lie within their bounds. Their mean, by which an open loop divides its rate, is the one that l.mean
// returns, within four standard errors, and the requested one where rounding and bounds do not move it.
func TestDraws(t *testing.T) {
	for _, tc := range []struct {
		l      Lengths
		asked  float64 // 0 is not compared
		lo, hi int
	}{
		{Fixed(7), 7, 7, 7},
		{Between(10, 20), 15, 10, 20},
		{OneOf([]int{1, 1, 4}), 2, 1, 4},
		{LognormalMean(500, 0.5, 0), 500, 1, 10000},
		{LognormalMean(4, 1, 0), 0, 1, 1000},
		{LognormalMean(4, 1, 5), 0, 1, 5},
		{LognormalMean(1.2, 0.5, 0), 0, 1, 100},
		{LognormalMean(300, 2, 400), 0, 1, 400},
		{LognormalMean(50000, 1, 0), 0, 1, 1 << 24},
		{LognormalMean(8, 0, 0), 8, 8, 8},
		{LognormalMean(8.4, 0, 0), 0, 8, 8},
		{LognormalMean(8, 0, 3), 3, 3, 3},
		{Lengths{Shape: Lognormal, Mean: 4, Sigma: 1, Min: 3, Max: 6}, 0, 3, 6},
	} {
		const n = 200000
		from := stream(1, forTurns)
		sum, squares := 0.0, 0.0
		for range n {
			v := tc.l.draw(from)
			if v < tc.lo || v > tc.hi {
				t.Fatalf("%+v: drew %d, want %d to %d", tc.l, v, tc.lo, tc.hi)
			}
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		mean := sum / n
		// The sum of a mean has steps.
		within := 4*math.Sqrt(max(0, squares/n-mean*mean)/n) + 1e-6*mean
		if got := tc.l.mean(); math.Abs(got-mean) > within || tc.asked > 0 && math.Abs(got-tc.asked) > within {
			t.Errorf("%+v: got %v, asked for %v, drew %v ± %v", tc.l, got, tc.asked, mean, within)
		}
	}
	rng := stream(1, forPromptLength)
	for _, d := range []Delay{Always(2 * sec), {Min: sec, Max: 3 * sec}, {Shape: Exponential, Mean: 2 * sec}} {
		const n = 40000
		sum := 0.0
		for range n {
			sum += d.draw(rng).Seconds()
		}
		if got := sum / n; math.Abs(got-2) > 4*2/math.Sqrt(n) {
			t.Errorf("%+v: mean %v s, want 2", d, got)
		}
	}
}

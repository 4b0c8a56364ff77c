package vllmsim

import (
	"math"
	"testing"
)

func TestNumbersAreSpelledAsInPython(t *testing.T) {
	// Numbers in the formats of prometheus_client's floatToGoString and of Python's repr.
	tests := []struct {
		v           float64
		value, repr string
	}{
		{0, "0.0", "0.0"},
		{math.Copysign(0, -1), "-0.0", "-0.0"},
		{1, "1.0", "1.0"},
		{-3, "-3.0", "-3.0"},
		{0.3, "0.3", "0.3"},
		{0.004887585532746819, "0.004887585532746819", "0.004887585532746819"},
		{0.0001, "0.0001", "0.0001"},
		{0.00001, "1e-05", "1e-05"},
		{1.5e-7, "1.5e-07", "1.5e-07"},
		{12.440000000000001, "12.440000000000001", "12.440000000000001"},
		{999999, "999999.0", "999999.0"},
		{999999.5, "999999.5", "999999.5"},
		{1000000, "1e+06", "1000000.0"},
		{1048576, "1.048576e+06", "1048576.0"},
		{1234567.25, "1.23456725e+06", "1234567.25"},
		{-1234567.25, "-1234567.25", "-1234567.25"},
		{1.79523303673e+09, "1.79523303673e+09", "1795233036.73"},
		{1.7952330642434523e+09, "1.7952330642434523e+09", "1795233064.2434523"},
		{4294967296, "4.294967296e+09", "4294967296.0"},
		{1e15, "1e+15", "1000000000000000.0"},
		{1e16, "1e+16", "1e+16"},
		{1.5e300, "1.5e+300", "1.5e+300"},
		{16.0 / 9, "1.7777777777777777", "1.7777777777777777"},
	}
	for _, tt := range tests {
		if got := valueString(tt.v); got != tt.value {
			t.Errorf("value of %v is %s, want %s", tt.v, got, tt.value)
		}
		if got := reprString(tt.v); got != tt.repr {
			t.Errorf("repr of %v is %s, want %s", tt.v, got, tt.repr)
		}
	}
	for v, want := range map[float64]string{math.Inf(1): "+Inf", math.Inf(-1): "-Inf"} {
		if got := valueString(v); got != want {
			t.Errorf("value of %v is %s, want %s", v, got, want)
		}
	}
	if got := valueString(math.NaN()); got != "NaN" {
		t.Errorf("value of NaN is %s", got)
	}
}

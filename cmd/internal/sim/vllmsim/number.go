package vllmsim

import (
	"bytes"
	"math"
	"strconv"
)

// appendValue appends a finite v as prometheus_client's floatToGoString writes it: Python's shortest form, with an
// exponent from a million on.
func appendValue(buf []byte, v float64) []byte {
	if v >= 0 && v < 1e6 && v == math.Trunc(v) && !math.Signbit(v) {
		buf = strconv.AppendUint(buf, uint64(v), 10)
		return append(buf, '.', '0')
	}
	if v >= 1e6 {
		// Digits and exponents of two places at least: Go's form is Python's here.
		return strconv.AppendFloat(buf, v, 'e', -1, 64)
	}
	return appendRepr(buf, v)
}

// appendRepr appends a finite v as Python's repr writes it: with an exponent below 1e-4 and from 1e16 on,
// else with a decimal point.
func appendRepr(buf []byte, v float64) []byte {
	if a := math.Abs(v); a != 0 && a < 1e-4 || a >= 1e16 {
		return strconv.AppendFloat(buf, v, 'e', -1, 64)
	}
	start := len(buf)
	buf = strconv.AppendFloat(buf, v, 'f', -1, 64)
	if bytes.IndexByte(buf[start:], '.') < 0 {
		buf = append(buf, '.', '0')
	}
	return buf
}

func valueString(v float64) string { return string(appendValue(nil, v)) }

func reprString(v float64) string { return string(appendRepr(nil, v)) }

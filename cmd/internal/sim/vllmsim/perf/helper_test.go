package perf_test

import (
	"fmt"
	"strconv"
)

func sprint(v any) string { return fmt.Sprintf("%+v", v) }

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

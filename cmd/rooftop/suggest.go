package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
)

// maxTypos is how many letters a flag may be off for another one to be meant.
const maxTypos = 2

// meant names the flag of a command that is spelled most like the one that there
// is not, as an addition to the error; "" where none is near.
func meant(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	best := nearest(unknown.GetSpecifiedName(), names...)
	if best == "" {
		return ""
	}
	return "; did you mean --" + best + "?"
}

// unread says of a flag whose text could not be read what it takes.
func unread(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, text := invalid.GetFlag(), strconv.Quote(invalid.GetValue())
	if _, err := strconv.ParseFloat(invalid.GetValue(), 64); err == nil && flag.Value.Type() == "duration" {
		return fmt.Errorf("--%s %s has no unit: write %ss or %sm", flag.Name, text, invalid.GetValue(), invalid.GetValue())
	}
	takes, known := map[string]string{
		"duration": "a time, as in 30s or 5m", "int": "a whole number", "uint64": "a whole number, not below zero", "float64": "a number", "bool": "true or false",
	}[flag.Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s: give %s", flag.Name, text, takes)
}

// suggested names the word that is spelled most like another, as an addition to an
// error; "" where none is near.
func suggested(word string, words ...string) string {
	best := nearest(word, words...)
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// nearest is the first of the words that are spelled most like another; "" where
// none is near.
func nearest(word string, words ...string) string {
	best, least := "", maxTypos+1
	for _, w := range words {
		if n := catalog.Distance(word, w); n < least {
			best, least = w, n
		}
	}
	if least >= len(best) {
		return ""
	}
	return best
}

package main

import (
	"errors"

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
	best, least := "", maxTypos+1
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if n := catalog.Distance(unknown.GetSpecifiedName(), f.Name); n < least && !f.Hidden {
			best, least = f.Name, n
		}
	})
	if best == "" || least >= len(best) {
		return ""
	}
	return "; did you mean --" + best + "?"
}

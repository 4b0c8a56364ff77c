// Package docs holds the documentation, so that rooftop help can show it.
package docs

import "embed"

// Pages are the Markdown files of this directory.
//
//go:embed *.md
var Pages embed.FS

// Package docs holds the documentation for users, which 'rooftop help TOPIC' shows. Its folder dev is for developers of
// rooftop and is no topic.
package docs

import "embed"

// Pages are the Markdown files of this directory, without those of dev.
//
//go:embed *.md
var Pages embed.FS

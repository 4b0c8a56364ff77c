// Package longtest says whether tests run in full: statistics over many seeds, every size of
// a screen, every kind of start. Builds with the tag "long" do, as .ci/nightly builds them;
// without it a test runs some of them.
package longtest

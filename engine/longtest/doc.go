// Package longtest says whether tests take their time: the statistics over many seeds, every
// size of a screen, every kind of start. Builds with the tag "long" do, as .ci/run
// does; without it a test tries some of them.
package longtest

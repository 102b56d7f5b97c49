// Package readme runs the commands that the documentation shows, so that they go on working. The test is compiled with
// the tag "whole" and run by `make readme`.
package readme

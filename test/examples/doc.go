// Package examples runs what lies in examples/ and checks what comes out. The tests are compiled with the tag "whole"
// and run by `make readme`.
package examples

// Package crash kills sluice with signal 9 at random moments and resumes the run after each: nothing may be lost and no
// command that has exited may run again. The test is compiled with the tag "whole" and run by `make crash`.
package crash

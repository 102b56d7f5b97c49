package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// outputFlag adds -o with the forms that a command has.
func outputFlag(c *cobra.Command, out *string, forms ...string) {
	c.Flags().VarP(&choice{to: out, of: forms}, "output", "o", "form of the output: "+strings.Join(forms, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
}

// choice is a flag that takes one of several words.
type choice struct {
	to *string
	of []string
}

func (c *choice) String() string {
	if c.to == nil {
		return ""
	}
	return *c.to
}
func (c *choice) Type() string { return "form" }
func (c *choice) Set(s string) error {
	if !slices.Contains(c.of, s) {
		return fmt.Errorf("must be one of %s", strings.Join(c.of, ", "))
	}
	*c.to = s
	return nil
}

// printObject writes a value as JSON or YAML.
func (a *app) printObject(form string, v any) error {
	text, err := marshal(form, v)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(text)
	return err
}

func marshal(form string, v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("print as %s: %w", form, err)
	}
	if form != "yaml" {
		return b.Bytes(), nil
	}
	text, err := yaml.JSONToYAML(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("print as yaml: %w", err)
	}
	return text, nil
}

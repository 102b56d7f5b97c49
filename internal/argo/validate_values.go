package argo

import (
	"fmt"
	"strings"
)

// argumentNames checks the names of a call's arguments.
func (v *validator) argumentNames(p place, a Arguments) {
	parameters := make([]string, len(a.Parameters))
	for i := range a.Parameters {
		parameters[i] = a.Parameters[i].Name
	}
	v.names(p.at("parameters"), parameters)
	artifacts := make([]string, len(a.Artifacts))
	for i := range a.Artifacts {
		artifacts[i] = a.Artifacts[i].Name
	}
	v.names(p.at("artifacts"), artifacts)
}

// names checks names of parameters or artifacts: there, valid, and each once.
func (v *validator) names(p place, names []string) {
	seen := map[string]int{}
	for i, name := range names {
		at := p.item(i).at("name")
		if name == "" {
			v.invalid(at, at.name+" is required", "is missing")
			continue
		}
		if hasTag(name) {
			continue
		}
		if !parameterNameForm.MatchString(name) {
			v.invalid(at, fmt.Sprintf("%s: '%s' is invalid: Parameter/Artifact name must consist of alpha-numeric characters, '_' or '-' e.g. my_param_1, MY-PARAM-1", at.name, name),
				"%s is not a valid name; use letters, digits, dashes and underscores", shorten(name))
		}
		if first, ok := seen[name]; ok {
			v.invalid(at, fmt.Sprintf("%s '%s' is not unique", at.name, name), "%s is also the name of entry %d; give each its own", shorten(name), first)
		}
		seen[name] = i
	}
}

// arguments checks what a call gives.
func (v *validator) arguments(p place, a Arguments) {
	v.argumentNames(p, a)
	for i, x := range a.Parameters {
		at := p.at("parameters").item(i)
		name := p.name + "." + x.Name
		if x.Value == nil && x.ValueFrom == nil && x.Default == nil {
			v.invalid(at, fmt.Sprintf("%s.value or %s.valueFrom is required", name, name), "has no value; add value or valueFrom, or leave the argument out")
		}
		if x.Value != nil && x.ValueFrom != nil {
			v.late(at, "has both value and valueFrom; keep one")
		}
		if f := x.ValueFrom; f != nil {
			v.argumentSource(at.at("valueFrom"), name, f)
		}
		if x.Value != nil {
			v.enum(at, name, x.Enum, string(*x.Value))
		}
	}
	for i, x := range a.Artifacts {
		v.argumentArtifact(p.at("artifacts").item(i), p.name+"."+x.Name, x)
	}
}

// argumentSource checks where an argument's value comes from.
func (v *validator) argumentSource(p place, name string, f *ValueFrom) {
	upstream := name + ".valueFrom only allows: default, configMapKeyRef and supplied"
	switch {
	case f.Path != "" || f.JSONPath != "" || f.JQFilter != "" || f.Parameter != "" || f.Expression != "":
		v.invalid(p, upstream, "may only have configMapKeyRef, supplied, event and default; what a file, a parameter or an expression gives is written as value: {{...}}")
	case f.ConfigMapKeyRef == nil && f.Supplied == nil && f.Event == "":
		v.invalid(p, upstream, "must have configMapKeyRef, supplied or event; a default alone is written as value")
	}
}

// argumentArtifact checks that an artifact says where it comes from, once.
func (v *validator) argumentArtifact(p place, name string, a Artifact) {
	sources := 0
	for _, set := range []bool{a.From != "", a.FromExpression != "", a.FromMetadata != nil} {
		if set {
			sources++
		}
	}
	switch {
	case sources > 1:
		v.invalid(p, name+" shouldn't have both `from` and `fromExpression` in Artifact", "has several of from, fromExpression and fromMetadata; keep one")
	case a.FromExpression != "" && !located(a):
		v.invalid(p, name+".from, artifact location, or key is required", "may not come from an expression, which is for outputs alone; write from, or let an output with fromExpression choose")
	case sources == 0 && !located(a) && !a.Optional:
		v.invalid(p, name+".from, artifact location, or key is required", "does not say where it comes from; add from, raw, s3, http or another location")
	}
	v.location(p, name, a.ArtifactLocation)
	v.expression(p.at("fromExpression"), a.FromExpression)
}

// located says whether an artifact's declaration itself says where the bytes are.
func located(a Artifact) bool {
	l := a.ArtifactLocation
	switch {
	case a.FromMetadata != nil:
		return true
	case l.HTTP != nil:
		return l.HTTP.URL != ""
	case l.S3 != nil:
		return l.S3.Key != ""
	case l.Git != nil:
		return l.Git.Repo != ""
	case l.GCS != nil:
		return l.GCS.Key != ""
	case l.OSS != nil:
		return l.OSS.Key != ""
	case l.Azure != nil:
		return l.Azure.Blob != ""
	case l.HDFS != nil:
		return l.HDFS.Path != ""
	case l.Artifactory != nil:
		return l.Artifactory.URL != ""
	case l.Plugin != nil:
		return l.Plugin.Key != ""
	}
	return l.Raw != nil || l.Folder != nil
}

// location checks that an artifact lies in one place only.
func (v *validator) location(p place, name string, l ArtifactLocation) {
	set := 0
	for _, s := range []bool{l.S3 != nil, l.Git != nil, l.HTTP != nil, l.Artifactory != nil, l.HDFS != nil, l.Raw != nil, l.OSS != nil, l.GCS != nil, l.Azure != nil, l.Plugin != nil, l.Folder != nil} {
		if s {
			set++
		}
	}
	if set > 1 {
		v.refuse(p, "lies in %d places; keep one of s3, git, http, raw and the like", set)
	}
	if l.Git != nil && l.Git.Repo == "" {
		v.invalid(p.at("git.repo"), name+".git.repo is required", "is missing")
	}
	if l.HDFS != nil {
		v.hdfs(p.at("hdfs"), name+".hdfs", l.HDFS)
	}
	if l.S3 != nil {
		v.oneOf(p.at("s3.addressingStyle"), l.S3.AddressingStyle, "path", "virtual-hosted")
	}
}

// hdfs checks an artifact in HDFS: where it is, and as whom it is read.
func (v *validator) hdfs(p place, name string, a *HDFSArtifact) {
	if len(a.Addresses) == 0 {
		v.invalid(p.at("addresses"), name+".addresses is required", "is missing; name the name nodes")
	}
	if a.Path != "" && !hasTag(a.Path) && !strings.HasPrefix(a.Path, "/") {
		v.invalid(p.at("path"), name+".path must be a absolute file path", "%s must begin with a slash", shorten(a.Path))
	}
	kerberos := a.KrbServicePrincipalName != "" && a.KrbConfigConfigMap != nil
	switch {
	case a.HDFSUser == "" && a.KrbCCacheSecret == nil && a.KrbKeytabSecret == nil:
		v.invalid(p, fmt.Sprintf("either %s.hdfsUser, %s.krbCCacheSecret or %s.krbKeytabSecret is required", name, name, name),
			"does not say as whom it is read; add hdfsUser, krbCCacheSecret or krbKeytabSecret")
	case a.KrbKeytabSecret != nil && (!kerberos || a.KrbUsername == "" || a.KrbRealm == ""):
		v.invalid(p, fmt.Sprintf("%s.krbServicePrincipalName, %s.krbConfigConfigMap, %s.krbUsername and %s.krbRealm are required with %s.krbKeytabSecret", name, name, name, name, name),
			"must have krbServicePrincipalName, krbConfigConfigMap, krbUsername and krbRealm beside krbKeytabSecret")
	case a.KrbCCacheSecret != nil && !kerberos:
		v.invalid(p, fmt.Sprintf("%s.krbServicePrincipalName and %s.krbConfigConfigMap are required with %s.krbCCacheSecret", name, name, name),
			"must have krbServicePrincipalName and krbConfigConfigMap beside krbCCacheSecret")
	}
}

// inputs checks what a template takes.
func (v *validator) inputs(p place, t *Template) {
	v.argumentNames(p, Arguments(t.Inputs))
	for i, in := range t.Inputs.Parameters {
		if f := in.ValueFrom; f != nil {
			v.expression(p.at("parameters").item(i).at("valueFrom.expression"), f.Expression)
		}
	}
	for i, in := range t.Inputs.Artifacts {
		at := p.at("artifacts").item(i)
		name := p.name + ".artifacts." + in.Name
		if in.Path != "" && t.isGraph() {
			v.invalid(at.at("path"), name+".path only valid in container/script templates", "is only possible for a task; steps and dag hand artifacts on without files")
		}
		if in.Path == "" && !t.isGraph() && needsPath(t) {
			v.invalid(at.at("path"), fmt.Sprintf("error in %s: Artifact '%s' path must be specified", name, in.Name), "is missing; say where the task finds the artifact")
		}
		if in.From != "" {
			v.invalid(at.at("from"), name+".from not valid in inputs", "is not possible in inputs; give it in the arguments of the call")
		}
		v.location(at, name, in.ArtifactLocation)
		v.archive(at, in.Archive)
		v.artifactGC(at, in.ArtifactGC)
	}
}

// needsPath says whether a template's artifacts are files in its container.
func needsPath(t *Template) bool {
	return t.Container != nil || t.Script != nil || t.ContainerSet != nil
}

// outputs checks what a template gives.
func (v *validator) outputs(p place, t *Template) {
	v.argumentNames(p, Arguments{Parameters: t.Outputs.Parameters, Artifacts: t.Outputs.Artifacts})
	for i, out := range t.Outputs.Parameters {
		at := p.at("parameters").item(i)
		v.outputParameter(at, p.name+".parameters."+out.Name, t, out)
		v.globalName(at, out.GlobalName)
	}
	for i, out := range t.Outputs.Artifacts {
		at := p.at("artifacts").item(i)
		name := p.name + ".artifacts." + out.Name
		switch {
		case out.Path != "" && t.isGraph():
			v.invalid(at.at("path"), name+".path only valid in container/script templates", "is only possible for a task; use from: with the artifact of a call")
		case out.Path == "" && needsPath(t) && out.KeyFrom == nil && out.MetadataFrom == nil:
			v.invalid(at.at("path"), fmt.Sprintf("error in %s: Artifact '%s' path must be specified", name, out.Name), "is missing; say where the task leaves the artifact")
		case t.isGraph() && out.From == "" && out.FromExpression == "" && out.FromMetadata == nil:
			v.late(at, "does not say where it comes from; add from with the artifact of a call, or fromExpression")
		case out.From != "" && out.FromExpression != "":
			v.invalid(at, name+" shouldn't have both `from` and `fromExpression` in Artifact", "has both from and fromExpression; keep one")
		case out.KeyFrom != nil && out.MetadataFrom != nil && out.KeyFrom.Path == out.MetadataFrom.Path:
			v.late(at.at("metadataFrom.path"), "is also keyFrom's file; give each its own")
		}
		v.expression(at.at("fromExpression"), out.FromExpression)
		v.location(at, name, out.ArtifactLocation)
		v.archive(at, out.Archive)
		v.artifactGC(at, out.ArtifactGC)
		v.globalName(at, out.GlobalName)
	}
}

func (v *validator) globalName(p place, name string) {
	if name != "" && !hasTag(name) && !parameterNameForm.MatchString(name) {
		v.invalid(p.at("globalName"), p.name+".globalName: Parameter/Artifact name must consist of alpha-numeric characters, '_' or '-' e.g. my_param_1, MY-PARAM-1",
			"%s is not a valid name; use letters, digits, dashes and underscores", shorten(name))
	}
}

func (v *validator) archive(p place, a *ArchiveStrategy) {
	set := 0
	for _, s := range []bool{deref(a).None != nil, deref(a).Tar != nil, deref(a).Zip != nil} {
		if s {
			set++
		}
	}
	if set > 1 {
		v.late(p.at("archive"), "has several of none, tar and zip; keep one")
	}
	if tar := deref(a).Tar; tar != nil && tar.CompressionLevel != nil && (*tar.CompressionLevel < -2 || *tar.CompressionLevel > 9) {
		v.late(p.at("archive.tar.compressionLevel"), "must be from 0 (none) to 9 (best)")
	}
}

func (v *validator) artifactGC(p place, g *ArtifactGC) {
	v.oneOf(p.at("artifactGC.strategy"), deref(g).Strategy, "OnWorkflowCompletion", "OnWorkflowDeletion", "Never")
}

// outputParameter checks that an output says where its value comes from, in a way that its template has.
func (v *validator) outputParameter(p place, name string, t *Template, out Parameter) {
	f := out.ValueFrom
	switch {
	case f != nil && out.Value != nil:
		v.invalid(p, name+" has both valueFrom and value specified, choose one", "has both value and valueFrom; keep one")
		return
	case out.Value != nil:
		return
	case f == nil:
		v.invalid(p, name+" does not have valueFrom or value specified", "does not say where its value comes from; add valueFrom")
		return
	}
	kinds := 0
	for _, set := range []bool{f.Path != "", f.JQFilter != "", f.JSONPath != "", f.Parameter != "", f.Expression != "", f.Supplied != nil} {
		if set {
			kinds++
		}
	}
	at := p.at("valueFrom")
	switch {
	case kinds == 0:
		v.invalid(at, "valueFrom type unspecified. choose one of: path, jqFilter, jsonPath, parameter, raw, expression",
			"does not say where the value comes from; add path (of a file), parameter or expression (of a graph), or supplied")
	case kinds > 1:
		v.invalid(at, "multiple valueFrom types specified. choose one of: path, jqFilter, jsonPath, parameter, raw", "says several times where the value comes from; keep one")
	case needsPath(t) && f.Path == "":
		v.invalid(at, fmt.Sprintf("%s.path must be specified for %s templates", name, t.kind()), "must have path: the file that the task writes")
	case t.Resource != nil && f.JQFilter == "" && f.JSONPath == "":
		v.invalid(at, fmt.Sprintf("%s .jqFilter or jsonPath must be specified for %s templates", name, t.kind()), "must have jqFilter or jsonPath: a part of the object")
	case t.isGraph() && f.Parameter == "" && f.Expression == "":
		v.invalid(at, fmt.Sprintf("%s.parameter or expression must be specified for %s templates", name, t.kind()), "must have parameter or expression: an output of a call")
	}
	v.expression(at.at("expression"), f.Expression)
}

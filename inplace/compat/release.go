package compat

import versions "k8s.io/apimachinery/pkg/util/version"

// Least is the oldest release of Kubernetes that Stayput supports.
var Least = versions.MustParseGeneric("1.35")

// Supported reports whether an API server of that version is new enough for Stayput.
func Supported(apiServer string) bool { return !olderThan(Least, apiServer) }

// olderThan reports whether the version is older than least. A number that does not parse is older than any version.
func olderThan(least *versions.Version, number string) bool {
	version, err := versions.ParseGeneric(number)
	return err != nil || version.LessThan(least)
}

// Package sdkloop compares package notify with what programs do without it: a loop that calls a vendor's SDK.
package sdkloop

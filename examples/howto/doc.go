// Package howto has the code of the pages in docs/howto, as tests: what a page shows is what runs here.
package howto

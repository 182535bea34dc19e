package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// newTable returns a table without lines, its first column to the left, the others, which are numbers, to the right.
func newTable(headers ...string) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "  ", ""
	t.SetStyle(style)
	header := make(table.Row, len(headers))
	configs := make([]table.ColumnConfig, len(headers))
	for i, h := range headers {
		header[i] = h
		configs[i] = columnConfig(i, i > 0)
	}
	t.SetColumnConfigs(configs)
	t.AppendHeader(header)
	return t
}

func columnConfig(i int, number bool) table.ColumnConfig {
	align := text.AlignLeft
	if number {
		align = text.AlignRight
	}
	return table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
}

func columnConfigs[T any](columns []column[T]) []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(columns))
	for i, c := range columns {
		configs[i] = columnConfig(i, c.number)
	}
	return configs
}

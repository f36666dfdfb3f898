import Storage

// GRDB has types of these names as well.
typealias Column = Storage.Column
typealias Row = Storage.Row
typealias Table = Storage.Table

package import Storage

/// A change of a table that the nodes are to be notified of: each row that is inserted sends one column's value to a channel.
package struct Notice: Sendable {
    /// Lower case letters, digits and underscores. Each has one notice.
    package let channel: String
    package let table: Table
    /// Integers and texts are sent as text, bytes in hexadecimal digits.
    package let column: Column
    /// Rows that are updated are sent too.
    package let includesUpdates: Bool
    /// Whether it can be read afterwards too: see ``ClusterDatabase/changes(since:)``.
    package let isLogged: Bool

    package init(_ channel: String, of column: Column, in table: Table, includesUpdates: Bool = false, isLogged: Bool = false) {
        self.channel = channel
        self.table = table
        self.column = column
        self.includesUpdates = includesUpdates
        self.isLogged = isLogged
    }
}

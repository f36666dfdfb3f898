package import Storage

/// A trigger that notifies the nodes of changes of a table: each inserted row sends the value of one column to a channel.
package struct Notice: Sendable {
    /// The name of the channel: lower case letters, digits and underscores. Each channel has one notice.
    package let channel: String
    package let table: Table
    /// The column to send: integers and text as text, bytes as hexadecimal digits.
    package let column: Column
    /// Whether updated rows are sent too.
    package var includesUpdates = false
    /// Whether changes are also logged, and can be read later: see ``ClusterDatabase/changes(since:after:limit:)``.
    package var isLogged = false
}

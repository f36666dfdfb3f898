package import Core

/// A notification that is a text alone, without data for the app.
package struct TextContent: NotificationContent {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package var byteCount: Int { text.utf8.count }
    package func text(in profile: PayloadProfile) -> String { text }
    package func writeData(for body: NotificationBody, to writer: inout JSONWriter) {}
}

public import Core

/// A notification that is a text alone, without data for the app.
public struct TextContent: NotificationContent {
    package let text: String

    public init(_ text: String) {
        self.text = text
    }

    public var byteCount: Int { text.utf8.count }
    public func text(in profile: PayloadProfile) -> String { text }
    public func writeData(for body: NotificationBody, to writer: inout JSONWriter) {}
}

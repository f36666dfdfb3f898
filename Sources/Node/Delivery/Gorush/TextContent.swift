public import Core

/// A notification that is a text alone, without data for the app.
public struct TextContent: NotificationContent {
    package let text: String

    /// A notification with this text for every profile.
    public init(_ text: String) {
        self.text = text
    }

    /// The length of the text in UTF-8.
    public var byteCount: Int { text.utf8.count }
    public func text(in profile: PayloadProfile) -> String { text }
    public func writeData(for body: NotificationBody, to writer: inout JSONWriter) {}
}

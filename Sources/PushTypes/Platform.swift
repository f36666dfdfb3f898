/// The push service of a device token. The raw values are those of gorush and of Status' TokenType.
public enum Platform: Int32, Sendable, CaseIterable, Codable {
    case apn = 1
    case firebase = 2

    public var name: String { self == .apn ? "apn" : "firebase" }
}

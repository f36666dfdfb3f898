/// A push service that a device's token is for. The numbers are gorush's, and those of Status' TokenType.
public enum Platform: Int32, Sendable, CaseIterable, Codable {
    case apn = 1
    case firebase = 2

    public var name: String { self == .apn ? "apn" : "firebase" }
}

public import Core

extension Platform {
    /// The push services that Status has.
    public static let ofStatus: [Platform] = [.apn, .firebase]

    /// - Parameter tokenType: Status' TokenType; nil for a value that is not one of its push services.
    init?(tokenType: UInt32) {
        guard let platform = Int32(exactly: tokenType).flatMap(Platform.init(rawValue:)), Self.ofStatus.contains(platform) else {
            return nil
        }
        self = platform
    }
}

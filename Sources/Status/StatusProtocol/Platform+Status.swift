public import Core

extension Platform {
    /// The push services that Status supports.
    public static let ofStatus: [Platform] = [.apn, .firebase]

    /// Returns nil for a token type that is not one of Status' push services.
    init?(tokenType: UInt32) {
        guard let platform = Int32(exactly: tokenType).flatMap(Platform.init(rawValue:)), Self.ofStatus.contains(platform) else {
            return nil
        }
        self = platform
    }
}

import Testing

/// The entry point of the test program. SwiftPM would generate the same, after a search for XCTest cases in the compiler's index, which builds with
/// `--disable-index-store` do not have. There are none: all tests are of Swift Testing.
@main struct TestProgram {
    static func main() async { await Testing.__swiftPMEntryPoint() as Never }
}

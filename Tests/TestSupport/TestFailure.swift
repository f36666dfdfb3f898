/// A part of a test that does not work, such as a missing tool or a process that ended.
package struct TestFailure: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

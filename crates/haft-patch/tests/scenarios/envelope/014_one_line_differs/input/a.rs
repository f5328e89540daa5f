fn main() {
    let x = 1;
    run(x);
}

echo loading
